!~ routes: asm patch
program sums
    implicit none
    integer :: i, total
    total = 0                           !~ 1
    do i = 1, 10
        if (mod(i, 2) == 0) then        !~ 10
            total = total + twice(i)    !~ 5
        else
            call bump(total)            !~ 5
        end if
    end do
    if (total /= 65) error stop 1
contains
    integer function twice(n)           !~ 5
        integer, intent(in) :: n
        twice = 2 * n                   !~ 5
    end function                        !~ 5

    subroutine bump(n)                  !~ 5
        integer, intent(inout) :: n
        n = n + 1                       !~ 5
    end subroutine                      !~ 5
end program
