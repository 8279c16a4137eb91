module counting
  implicit none
  integer :: total = 0
contains
  subroutine add(n)
    integer, intent(in) :: n
    integer :: twice
    twice = 2 * n
    total = total + twice
    print *, twice
  end subroutine
end module

program main
  use counting
  implicit none
  integer :: i, k
  integer :: squares(5), from_three(3:7)
  integer, allocatable :: moving(:)
  k = 7
  allocate(moving(5))
  do i = 1, 5
    squares(i) = i * i
    from_three(i + 2) = -i
    moving(i) = i
    call add(i)
    call inner(i)
  end do
contains
  subroutine inner(m)
    integer, intent(in) :: m
    integer :: q
    q = m + k
    print *, q, squares(m), from_three(m + 2), moving(m)
  end subroutine
end program
