!~ routes: asm patch
module both
contains
    subroutine first(n, result)
        integer, intent(in) :: n
        integer, intent(out) :: result
        result = n + 1                  !~ 5
        return
        entry second(n, result)
        result = n + 2                  !~ 5
        if (result > 4) return
        result = result * 2             !~ 2
    end subroutine
end module

program main
    use both
    implicit none
    integer :: i, got, total
    total = 0                           !~ 1
    do i = 1, 5
        call first(i, got)
        total = total + got             !~ 5
        call second(i, got)
        select case (i)                 !~ 5
        case (1)
            total = total + 1           !~ 1
        case (2:3)
            total = total + 2           !~ 2
        case default
            total = total + 3
        end select
    end do
    if (total /= 31) error stop 1
end program
